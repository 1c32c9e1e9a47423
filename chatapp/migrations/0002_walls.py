from django.db import migrations

from accounts.owned import owner_key, same_owner, walled


class Migration(migrations.Migration):
    """Sessions and messages behind the wall; a message belongs to its session's owner."""

    dependencies = [("chatapp", "0001_initial"), ("accounts", "0002_walls")]
    operations = [
        walled("chatapp_chatsession"),
        walled("chatapp_message"),
        owner_key("chatapp_chatsession"),
        owner_key("chatapp_message"),
        same_owner("chatapp_message", "session_id", "chatapp_chatsession"),
        same_owner("chatapp_message", "question_id", "chatapp_message"),
    ]
